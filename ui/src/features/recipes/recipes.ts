/** Recipes: working tools for people who do not program. Questions fill the places in a definition. */
import type { Json, JsonObject } from '@/api/types';
import type { MessageKey } from '@/i18n';

export interface Question {
  key: string;
  label: MessageKey;
  value: string;
  /** Stored as a credential, never in the definition. */
  secret?: string;
}

export interface Recipe {
  id: string;
  icon: 'sun' | 'message' | 'calculator' | 'braces' | 'database' | 'mail' | 'search' | 'world';
  title: MessageKey;
  hint: MessageKey;
  questions: Question[];
  build: (answers: Record<string, string>) => JsonObject;
  /** Arguments for the first try. */
  example: JsonObject;
}

const text = (name: string, description: string, required = true): Json => ({ name, type: 'string', description, ...(required ? { required: true } : {}) });
const name = (value: string): Question => ({ key: 'name', label: 'common.name', value });

export const RECIPES: Recipe[] = [
  {
    id: 'weather', icon: 'sun', title: 'recipe.weather', hint: 'recipe.weather.hint', questions: [name('get-weather')], example: { city: 'Berlin' },
    build: (answers) => ({ name: answers['name'] ?? '', description: 'Current weather for a city', tags: ['weather'], params: [text('city', 'Name of the city')], execution: { is_pure: true }, implementation: { type: 'http', method: 'GET', url: 'https://wttr.in/{{city}}', query: { format: 'j1' }, extract: '$.current_condition[0]' } }),
  },
  {
    id: 'slack', icon: 'message', title: 'recipe.slack', hint: 'recipe.slack.hint', example: { message: 'Hello from haft' },
    questions: [name('send-slack-message'), { key: 'channel', label: 'recipe.channel', value: '#general' }, { key: 'token', label: 'recipe.slackToken', value: '', secret: 'SLACK_BOT_TOKEN' }],
    build: (answers) => ({ name: answers['name'] ?? '', description: `Send a message to the Slack channel ${answers['channel'] ?? ''}`, tags: ['slack'], requires_confirmation: true, params: [text('message', 'Text of the message')], implementation: { type: 'http', method: 'POST', url: 'https://slack.com/api/chat.postMessage', headers: { Authorization: 'Bearer ${SLACK_BOT_TOKEN}' }, body: { channel: answers['channel'] ?? '', text: '{{message}}' } } }),
  },
  {
    id: 'calculator', icon: 'calculator', title: 'recipe.calculator', hint: 'recipe.calculator.hint', questions: [name('calculate')], example: { expression: '(17 + 4) * 2' },
    build: (answers) => ({ name: answers['name'] ?? '', description: 'Evaluate an arithmetic expression with + - * / ** % and parentheses', tags: ['math'], params: [text('expression', 'For example (17 + 4) * 2')], sandbox: true, execution: { is_pure: true }, implementation: { type: 'script', runtime: 'python', body: 'import ast, json, operator, os\nOPS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,\n       ast.Mod: operator.mod, ast.Pow: operator.pow, ast.USub: operator.neg}\ndef value(node):\n    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)): return node.value\n    if isinstance(node, ast.BinOp): return OPS[type(node.op)](value(node.left), value(node.right))\n    if isinstance(node, ast.UnaryOp): return OPS[type(node.op)](value(node.operand))\n    raise ValueError("only numbers and + - * / ** % are allowed")\nexpression = json.loads(os.environ["HAFT_ARGS"])["expression"]\nprint(json.dumps({"result": value(ast.parse(expression, mode="eval").body)}))\n' } }),
  },
  {
    id: 'json', icon: 'braces', title: 'recipe.json', hint: 'recipe.json.hint', questions: [name('format-json')], example: { text: '{"b":1,"a":[1,2]}' },
    build: (answers) => ({ name: answers['name'] ?? '', description: 'Check and format a JSON text', tags: ['json'], params: [text('text', 'The JSON text')], sandbox: true, execution: { is_pure: true }, implementation: { type: 'script', runtime: 'python', output: 'text', body: 'import json, os\ntext = json.loads(os.environ["HAFT_ARGS"])["text"]\nprint(json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False))\n' } }),
  },
  {
    id: 'database', icon: 'database', title: 'recipe.database', hint: 'recipe.database.hint', questions: [name('query-database'), { key: 'file', label: 'recipe.sqliteFile', value: '/srv/data/shop.db' }], example: { sql: 'select 1 as one' },
    build: (answers) => ({ name: answers['name'] ?? '', description: 'Run a read-only SQL query on the database and return the rows', tags: ['database', 'read-only'], params: [text('sql', 'A SELECT statement')], implementation: { type: 'script', runtime: 'python', body: `import json, os, sqlite3\nargs = json.loads(os.environ["HAFT_ARGS"])\ndatabase = sqlite3.connect("file:" + ${JSON.stringify(answers['file'] ?? '')} + "?mode=ro", uri=True)\ndatabase.row_factory = sqlite3.Row\nprint(json.dumps([dict(row) for row in database.execute(args["sql"]).fetchmany(200)]))\n` } }),
  },
  {
    id: 'mail', icon: 'mail', title: 'recipe.mail', hint: 'recipe.mail.hint', example: { subject: 'Hello', body: 'Sent by haft' },
    questions: [name('notify-team'), { key: 'to', label: 'recipe.mailTo', value: 'team@example.com' }, { key: 'key', label: 'recipe.mailKey', value: '', secret: 'RESEND_API_KEY' }, { key: 'from', label: 'recipe.mailFrom', value: 'haft@example.com' }],
    build: (answers) => ({ name: answers['name'] ?? '', description: `Send an e-mail to ${answers['to'] ?? ''}`, tags: ['mail'], requires_confirmation: true, params: [text('subject', 'Subject'), text('body', 'Text of the mail')], implementation: { type: 'http', method: 'POST', url: 'https://api.resend.com/emails', headers: { Authorization: 'Bearer ${RESEND_API_KEY}' }, body: { from: answers['from'] ?? '', to: [answers['to'] ?? ''], subject: '{{subject}}', text: '{{body}}' } } }),
  },
  {
    id: 'search', icon: 'search', title: 'recipe.search', hint: 'recipe.search.hint', questions: [name('search-the-web'), { key: 'key', label: 'recipe.serperKey', value: '', secret: 'SERPER_API_KEY' }], example: { query: 'model context protocol' },
    build: (answers) => ({ name: answers['name'] ?? '', description: 'Search the web and return titles, links and snippets', tags: ['web', 'read-only'], params: [text('query', 'What to search for')], implementation: { type: 'http', method: 'POST', url: 'https://google.serper.dev/search', headers: { 'X-API-KEY': '${SERPER_API_KEY}' }, body: { q: '{{query}}' }, extract: '$.organic' } }),
  },
  {
    id: 'api', icon: 'world', title: 'recipe.api', hint: 'recipe.api.hint', questions: [name('call-my-service'), { key: 'url', label: 'impl.url', value: 'https://api.example.com/items' }, { key: 'what', label: 'recipe.what', value: 'Search the items of our shop' }], example: { q: 'shoes' },
    build: (answers) => ({ name: answers['name'] ?? '', description: answers['what'] ?? '', params: [text('q', 'Search text')], implementation: { type: 'http', method: 'GET', url: answers['url'] ?? '', query: { q: '{{q}}' } } }),
  },
];
