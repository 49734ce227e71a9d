"""An MCP server with the OAuth provider of FastMCP, whose one tool returns the mail of the person who logged in.

It prints its port. At its login page, the parameter `as` says who somebody is.
"""

import secrets
import socket
import warnings
from urllib.parse import parse_qs, urlparse

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import ClientRegistrationOptions, InMemoryOAuthProvider
from fastmcp.server.dependencies import get_access_token
from starlette.responses import RedirectResponse

warnings.simplefilter("ignore")


class People(InMemoryOAuthProvider):
    """The provider of FastMCP, which knows no people, with a login page."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.begun, self.codes, self.people = {}, {}, {}

    async def authorize(self, client, params):
        key = secrets.token_urlsafe(16)
        self.begun[key] = (client, params)
        return f"{base}/login?key={key}"

    async def log_in(self, key, person):
        url = await super().authorize(*self.begun.pop(key))
        [code] = parse_qs(urlparse(url).query)["code"]
        self.codes[code] = person
        return url

    async def exchange_authorization_code(self, client, authorization_code):
        tokens = await super().exchange_authorization_code(client, authorization_code)
        self.people[tokens.access_token] = self.codes.pop(authorization_code.code)
        return tokens

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        person = self.people[self._refresh_to_access_map[refresh_token.token]]
        tokens = await super().exchange_refresh_token(client, refresh_token, scopes)
        self.people[tokens.access_token] = person
        return tokens


listener = socket.create_server(("127.0.0.1", 0))
base = f"http://127.0.0.1:{listener.getsockname()[1]}"
people = People(
    base_url=base,
    client_registration_options=ClientRegistrationOptions(
        enabled=True, valid_scopes=["mail"], default_scopes=["mail"]),
    required_scopes=["mail"],
)
server = FastMCP("mail", auth=people)


@server.tool
def inbox() -> str:
    """Returns the mail of the person who logged in."""
    return f"mail of {people.people[get_access_token().token]}"


@server.custom_route("/login", methods=["GET"])
async def login(request):
    query = request.query_params
    return RedirectResponse(await people.log_in(query["key"], query["as"]), status_code=302)


print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(server.http_app(), log_level="error")).run(sockets=[listener])
