import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

const target = process.env.HAFT_URL ?? 'http://127.0.0.1:18901';
const proxy = Object.fromEntries(
  ['/api', '/tools', '/mcp', '/login', '/logout', '/healthz', '/readyz', '/openapi.json'].map((path) => [
    path,
    { target, changeOrigin: true, headers: { 'X-Haft-Session': '1' } },
  ]),
);

export default defineConfig({
  base: '/ui/',
  plugins: [react()],
  resolve: { alias: {
      '@': new URL('./src', import.meta.url).pathname,
      // @rjsf/core refers to it for its own tests only; it compiles schemas with `new Function`.
      '@rjsf/validator-ajv8': new URL('./src/parts/schema-form/validator.ts', import.meta.url).pathname,
    } },
  server: { port: 18902, proxy },
  build: {
    target: 'es2022',
    // No `data:` assets: the policy of the page then needs no exception for them.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
    // What most pages share is one file: the first view needs a dozen requests less.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'shared', minShareCount: 6, test: /node_modules|src\/(parts|api|i18n)/ }] } } },
  },
  test: { environment: 'happy-dom', include: ['src/**/*.test.{ts,tsx}'], setupFiles: ['src/test-setup.ts'] },
});
