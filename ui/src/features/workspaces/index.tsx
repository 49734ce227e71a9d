export { WorkspacesPage } from './list-page';
export { WorkspacePage } from './workbench';
