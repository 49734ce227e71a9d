export { RunsPage } from './runs-page';
export { RunPage } from './run-view';
