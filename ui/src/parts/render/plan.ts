/** A render plan as a component can use it: the renderer, its settings with their types, or why there is none. */
import { RENDERERS, type RendererName } from '@/api/rendering';
import type { RenderPlan } from '@/api/types';

export interface ReadyPlan {
  renderer: RendererName;
  config: Record<string, unknown>;
  /** The file of the workspace to which the renderer is bound. */
  file: string | undefined;
  isEditable: boolean;
}

export type ReadPlan = ReadyPlan | { error: 'failed' | 'unknown'; message: string };

/** A path within the workspace; one that leads out of it is none. */
export function safePath(value: unknown): string | undefined {
  if (typeof value !== 'string' || value === '' || value.startsWith('/') || /^[A-Za-z]:|\\|\0/.test(value)) return undefined;
  const parts = value.split('/').filter((part) => part !== '' && part !== '.');
  return parts.length === 0 || parts.includes('..') ? undefined : parts.join('/');
}

export function readPlan(plan: RenderPlan): ReadPlan {
  if (plan.error) return { error: 'failed', message: plan.error };
  const renderer = RENDERERS.find((name) => name === plan.renderer);
  if (!renderer) return { error: 'unknown', message: plan.renderer };
  const config = (plan.config ?? {}) as Record<string, unknown>;
  return { renderer, config, file: safePath(config['file']), isEditable: config['editable'] === true };
}

/** An address that a frame may show: http or https, and nothing else. */
export function safeFrameUrl(value: unknown): string | undefined {
  if (typeof value !== 'string' || !URL.canParse(value)) return undefined;
  const { protocol, href } = new URL(value);
  return protocol === 'http:' || protocol === 'https:' ? href : undefined;
}

const IMAGE_TYPE = /^image\/(?:png|jpeg|gif|webp|avif|svg\+xml)$/;
const BASE64 = /^[A-Za-z0-9+/\s]*={0,2}\s*$/;

const IMAGE_TYPES: Record<string, string> = { png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp', avif: 'image/avif', svg: 'image/svg+xml' };

/** The type of an image by the name of its file. */
export const imageType = (path: string): string | undefined => IMAGE_TYPES[path.split('.').at(-1)?.toLowerCase() ?? ''];

/** The address of an image: a file of a workspace or a toolset, a `data:` address of a known type, or base64 with its type. */
export function imageSource(config: Record<string, unknown>): string | undefined {
  const content = config['data'] ?? config['url'] ?? config['content'] ?? config['src'];
  if (typeof content !== 'string') return undefined;
  if (/^\/api\/(?:workspaces|chats|toolsets)\//.test(content)) return content.split('/').includes('..') ? undefined : content;
  const whole = /^data:([\w/+.-]+);base64,(.*)$/s.exec(content);
  if (!whole && content === config['url']) return undefined;
  const [type, data] = whole ? [whole[1] ?? '', whole[2] ?? ''] : [String(config['mime_type'] ?? config['mimeType'] ?? 'image/png'), content];
  return IMAGE_TYPE.test(type) && BASE64.test(data) ? `data:${type};base64,${data.replaceAll(/\s/g, '')}` : undefined;
}

const TEXT_LIMIT = 8000;

/** The bytes as text, unless they are none. */
export function decodeText(bytes: Uint8Array): string | undefined {
  if (bytes.subarray(0, TEXT_LIMIT).includes(0)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
