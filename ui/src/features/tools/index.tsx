import { lazy, Suspense } from 'react';
import { Loading } from '@/parts/page';

export { ToolsPage } from './tools-page';
export { ToolPage } from './tool-detail';

const NewTool = lazy(() => import('./new-tool').then((module) => ({ default: module.NewToolPage })));

export function NewToolPage() {
  return <Suspense fallback={<Loading />}><NewTool /></Suspense>;
}
export { QuickCall } from './quick-call';
