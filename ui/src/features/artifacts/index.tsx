export { ArtifactPage } from './artifact-detail';
export { ArtifactsPage, NewArtifactPage } from './artifacts-page';
