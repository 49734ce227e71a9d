export { ToolsetsPage } from './toolsets-page';
