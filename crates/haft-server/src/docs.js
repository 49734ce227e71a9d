// The token of a login link stands behind the `#`: no server and no log sees it. It is kept for this tab
// only, and taken out of the address bar.
const linked = new URLSearchParams(location.hash.slice(1)).get("token");
if (linked) {
  sessionStorage.setItem("haft-token", linked);
  history.replaceState(null, "", location.pathname);
}
const token = sessionStorage.getItem("haft-token");
const ui = SwaggerUIBundle({
  url: "/api/openapi.json",
  dom_id: "#page",
  deepLinking: true,
  docExpansion: "list",
  tryItOutEnabled: true,
  onComplete: () => {
    if (token) ui.preauthorizeApiKey("bearer", token);
  },
});
