export { PipelinePage } from './pipeline-detail';
export { PipelinesPage } from './pipelines-page';
