export function CredentialsPage() { return null; }
export function TokensPage() { return null; }
export function TenantsPage() { return null; }
export function HealthPage() { return null; }
export function SettingsPage() { return null; }
