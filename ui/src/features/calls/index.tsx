export { CallsPage } from './calls-page';
export { ComparePage } from './compare';
