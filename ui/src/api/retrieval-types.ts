/** Retrieval pipelines as the server describes them. */
import type { components } from './schema';

type Schemas = components['schemas'];

export type DocumentPage = Schemas['DocumentList'];
export type Hit = Schemas['ChunkHit'];
/** How far the documents of a pipeline are, all together. */
export type IngestReport = Schemas['IngestReport'];
export type NewDocuments = Schemas['NewDocuments'];
/** Always sent with a name, which one may leave out when one writes. */
export type PipelineRevision = Schemas['PipelineRevision'];
export type Pipeline = Schemas['Pipeline'] & { name: string };
export type PipelineBody = Schemas['PipelineBody'];
export type PipelineDocument = Schemas['DocumentInfo'];
export type RetrievalQuery = Schemas['QueryBody'];
export type RetrievalResult = Schemas['QueryResult'];

/** The fields that one fills in. */
export type PipelineFields = Pick<Pipeline, keyof Schemas['PipelineDefinition']>;
