// The smoke set (E2E_SET=smoke): each page once, and what most people do first. `true` stands for all tests of a walk.
export const SMOKE = {
  '01-login': true,
  '02-guided-start': true,
  '03-create': ['http', 'bash script', 'form and source are kept in step, and a problem is shown at its line'],
  '04-tester': true,
  '06-approvals': ['one person asks, another approves; the count is live', 'deny with a reason', 'edit the arguments and approve'],
  '08-access': ['a viewer looks and changes nothing'],
  '09-hostile': ['HTML, scripts and marks that turn the text in a description and a result'],
  // Every page of the navigation and its details, the policies among them.
  '13-accessibility': ['light', 'the login page'],
  '14-contract': true,
  '15-calls': true,
  '18-workspaces': ['from the navigation to a file; the address leads back to it', 'edit and save, delete and undo'],
  '21-chat': [
    'a new chat from the navigation: an agent, a message, the answer, a title',
    'a tool call has a card with its arguments, its state and its result',
    'an approval in the chat: approve, and the answer goes on',
  ],
  '22-runs': ['from the list to the trace: models, tools, tokens, the answer'],
  '23-agents': ['an agent is made by the form: model, instructions with a variable, tools by the picker', 'Try opens a chat with it, and its runs are listed'],
  '24-building-blocks': ['a pipeline is created, filled by upload, text and drop, and asked'],
  '25-people': true,
  '26-accounts-applications': true,
  '27-server-pages': true,
};

/** Fails if the set names a walk or a test that does not exist: it would be left out in silence. */
export function checkSmoke(walks) {
  for (const [walk, tests] of Object.entries(SMOKE)) {
    const known = walks.get(walk);
    if (known === undefined) throw new Error(`e2e/smoke.mjs names the walk ${walk}, which does not exist`);
    for (const test of tests === true ? [] : tests) if (!known.includes(test)) throw new Error(`e2e/smoke.mjs names a test that ${walk} does not have: ${test}`);
  }
}
