// The pages that the server renders: login, consent, command line, errors; in both languages, at two widths, in both themes.
import assert from 'node:assert/strict';
import { severe } from '../lib/axe.mjs';

const CLI = 'haft-cli';
const REDIRECT = 'https://intranet.example.com/callback';
const LANGUAGES = { en: { locale: 'en-US', login: 'Log in to haft' }, de: { locale: 'de-DE', login: 'Bei haft anmelden' } };
const LOOKS = [
  { colorScheme: 'light', viewport: { width: 1440, height: 900 } }, { colorScheme: 'dark', viewport: { width: 1440, height: 900 } },
  { colorScheme: 'light', viewport: { width: 390, height: 844 } }, { colorScheme: 'dark', viewport: { width: 390, height: 844 } },
];

/** A page of a server, logged in as the administrator. */
async function loggedIn(world, options) {
  const page = await world.blank(options);
  const answer = await page.request.post('/login', { form: { token: world.haft.token }, headers: { Origin: world.base }, maxRedirects: 0 });
  assert.equal(answer.status(), 303);
  return page;
}

/** What an application opens, with a change of its parameters. */
async function authorizePath(world, changes = {}) {
  world.client ??= world.haft.api('POST', '/application-clients', { name: 'Intranet of <b>everybody</b>', redirect_uris: [REDIRECT] });
  const { client_id } = await world.client;
  const query = { response_type: 'code', client_id, redirect_uri: REDIRECT, state: 's', code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256', ...changes };
  return `/oauth/authorize?${new URLSearchParams(query)}`;
}

async function devicePath(world) {
  const answer = await fetch(`${world.haft.url}/oauth/device_authorization`, { method: 'POST', body: new URLSearchParams({ client_id: CLI, device_name: 'laptop-of-ann' }) });
  assert.equal(answer.status, 200, await answer.clone().text());
  return `/device?user_code=${(await answer.json()).user_code}`;
}

async function look(page, where, language) {
  assert.equal(await page.locator('html').getAttribute('lang'), language, where);
  assert.deepEqual(await severe(page), [], where);
  const [width, room] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  assert.ok(width <= room, `${where} is ${width} pixels wide, the window ${room}`);
}

export const tests = {
  async 'every page is accessible and fits, in both languages and both themes'(world) {
    for (const [language, { locale }] of Object.entries(LANGUAGES)) {
      for (const options of LOOKS) {
        const page = await loggedIn(world, { locale, ...options });
        const visitor = await world.blank({ locale, ...options });
        const pages = [
          [visitor, '/login', 200], [visitor, '/login?invitation=abc', 200], [visitor, '/login?code=%20', 401], [visitor, '/login/oidc/none', 404],
          [page, '/device', 200], [page, await devicePath(world), 200], [page, '/device?user_code=BCDF-GHJK', 404],
          [page, await authorizePath(world), 200], [page, await authorizePath(world, { redirect_uri: 'https://evil.example/' }), 400],
          [page, '/api/accounts/callback?state=unknown&repeated=1', 400],
        ];
        for (const [on, path, status] of pages) {
          const answer = await on.goto(path);
          const where = `${language} ${options.colorScheme} ${options.viewport.width} ${path}`;
          assert.equal(answer.status(), status, where);
          const policy = answer.headers()['content-security-policy'];
          assert.ok(policy.includes("frame-ancestors 'none'") && !policy.includes('unsafe'), where);
          await look(on, where, language);
        }
        await page.context().close();
        await visitor.context().close();
      }
    }
  },

  async 'the language of the web interface holds for the pages of the server'(world) {
    const page = await world.open('/settings', { locale: 'en-US' });
    await page.getByText('Deutsch', { exact: true }).click();
    await page.getByRole('heading', { name: 'Einstellungen', exact: true }).waitFor();
    await page.goto('/login');
    await page.getByRole('heading', { name: LANGUAGES.de.login }).waitFor();
    await page.getByLabel('Token').fill('not-a-token');
    await page.getByRole('button', { name: 'Anmelden' }).click();
    await page.getByText('Das Token ist ungültig oder abgelaufen.').waitFor();
  },

  async 'a person allows an application in German'(world) {
    const page = await loggedIn(world, { locale: 'de-DE' });
    await page.goto(await authorizePath(world));
    await page.getByRole('heading', { name: 'Anwendung verbinden' }).waitFor();
    // The name of the application is text.
    await page.getByText('Intranet of <b>everybody</b>').first().waitFor();
    await page.getByText('intranet.example.com', { exact: true }).waitFor();
    await page.getByLabel('Nur diese:').check();
    await page.getByText(/^Aus \d+ Tools in \d+ Bundles? wählen/).click();
    await page.getByRole('button', { name: 'Erlauben' }).click();
    await page.getByText('Wählen Sie mindestens ein Tool oder alle.').waitFor();
    await page.getByLabel(/Alle, die ich nutzen darf/).check();
    // The application is not there.
    await page.route(`${REDIRECT}**`, (route) => route.fulfill({ status: 200, contentType: 'text/html', body: '<title>back</title>' }));
    await page.getByRole('button', { name: 'Erlauben' }).click();
    await page.waitForURL(`${REDIRECT}?**`);
    assert.ok(new URL(page.url()).searchParams.get('code'));
  },
};
