import { Suspense } from 'react';
import { lazyPart } from '@/parts/lazy';
import { Loading } from '@/parts/page';

export { AgentsPage } from './agents-page';
export { AgentPage } from './agent-detail';

const NewAgent = lazyPart(async () => (await import('./new-agent')).NewAgentPage);

export function NewAgentPage() {
  return <Suspense fallback={<Loading />}><NewAgent /></Suspense>;
}
