export { CredentialsPage } from './credentials';
export { HealthPage } from './health';
export { SettingsPage } from './settings';
export { TenantsPage } from './tenants';
export { TokensPage } from './tokens';
export { WebhooksPage } from './webhooks';
