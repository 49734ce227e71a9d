/** A ZIP file of stored, uncompressed files. */
export interface ZipEntry {
  path: string;
  bytes: Uint8Array;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value >>> 0;
});

export function crc32(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = (value >>> 8) ^ (TABLE[(value ^ byte) & 0xff] ?? 0);
  return (value ^ 0xffffffff) >>> 0;
}

/** Numbers of two and four bytes, the lower ones first. */
function record(...fields: [size: 2 | 4, value: number][]): Uint8Array {
  const view = new DataView(new ArrayBuffer(fields.reduce((sum, [size]) => sum + size, 0)));
  let at = 0;
  for (const [size, value] of fields) {
    if (size === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
    at += size;
  }
  return new Uint8Array(view.buffer);
}

const UTF8_NAMES = 0x0800;
// 1980-01-01, the earliest that the format knows: the same files give the same archive.
const DAY = 0x21;

export function zip(entries: readonly ZipEntry[]): Blob {
  const files: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let offset = 0;
  for (const { path, bytes } of entries) {
    const name = new TextEncoder().encode(path);
    const shared: [2 | 4, number][] = [[2, 20], [2, UTF8_NAMES], [2, 0], [2, 0], [2, DAY], [4, crc32(bytes)], [4, bytes.length], [4, bytes.length], [2, name.length], [2, 0]];
    const head = record([4, 0x04034b50], ...shared);
    files.push(head, name, bytes);
    directory.push(record([4, 0x02014b50], [2, 20], ...shared, [2, 0], [2, 0], [2, 0], [4, 0], [4, offset]), name);
    offset += head.length + name.length + bytes.length;
  }
  const length = directory.reduce((sum, part) => sum + part.length, 0);
  const end = record([4, 0x06054b50], [2, 0], [2, 0], [2, entries.length], [2, entries.length], [4, length], [4, offset], [2, 0]);
  return new Blob([...files, ...directory, end].map((part) => part.slice()), { type: 'application/zip' });
}
