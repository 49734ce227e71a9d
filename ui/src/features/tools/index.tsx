import { Suspense } from 'react';
import { lazyPart } from '@/parts/lazy';
import { Loading } from '@/parts/page';

export { ToolsPage } from './tools-page';
export { ToolPage } from './tool-detail';

const NewTool = lazyPart(async () => (await import('./new-tool')).NewToolPage);

export function NewToolPage() {
  return <Suspense fallback={<Loading />}><NewTool /></Suspense>;
}
export { QuickCall } from './quick-call';
