/** The nonce of the Content-Security-Policy for style elements, where the server sends one. */
export function styleNonce(): string | undefined {
  const value = document.querySelector<HTMLMetaElement>('meta[name="haft-nonce"]')?.content;
  return value && !value.startsWith('{{') ? value : undefined;
}
