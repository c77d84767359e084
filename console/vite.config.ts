/// <reference types="vitest/config" />
import { defineConfig } from "vite";

// Where a running service is, for `npm run dev`.
const service = "http://127.0.0.1:1234";

export default defineConfig({
  base: "/console/",
  // JSX is Preact's: no plugin is needed for it.
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    // Files that are named by their content, below /console/assets/: they may be cached for ever.
    assetsDir: "assets",
    // The content security policy allows neither inline script nor data: URLs of scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
  },
  server: { proxy: { "/v1": service, "/identity": service, "/openapi.json": service } },
  test: { include: ["src/**/*.test.ts"] },
});
