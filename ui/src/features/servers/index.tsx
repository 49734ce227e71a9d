export function ServersPage() { return null; }
