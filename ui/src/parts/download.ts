/** Hands a text or bytes to the browser as a file. */
export function saveFile(name: string, type: string, text: string | Blob) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
