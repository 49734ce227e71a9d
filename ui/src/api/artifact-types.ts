/** Code artifacts as the server describes them. */
import type { components } from './schema';

type Schemas = components['schemas'];

export type ArtifactBody = Schemas['ArtifactBody'];
export type ArtifactInput = Schemas['ArtifactInput'];
export type ArtifactPage = Schemas['ArtifactList'];
export type ArtifactRuntime = Schemas['ArtifactRuntime'];
export type ArtifactVersion = Schemas['ArtifactVersion'];
export type ArtifactVersionPage = Schemas['ArtifactVersionList'];
export type CodeArtifact = Schemas['CodeArtifact'];
export type InputType = Schemas['InputType'];

/** The fields that one fills in. */
export type ArtifactFields = Schemas['ArtifactContent'] & Pick<CodeArtifact, 'slug'>;
