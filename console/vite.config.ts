/// <reference types="vitest/config" />
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { defineConfig, type Plugin } from "vite";

// Address of a running service, for `npm run dev`.
const service = "http://127.0.0.1:1234";

/** Accepted licenses of bundled packages. They only require attribution. */
const ALLOWED = ["MIT", "ISC", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "0BSD"];

/** Lists the bundled packages with their licenses. Other licenses fail the build. */
function licences(): Plugin {
  return {
    name: "licences",
    apply: "build",
    generateBundle(_, bundle) {
      const folders = new Set<string>();
      for (const chunk of Object.values(bundle)) {
        for (const id of chunk.type === "chunk" ? chunk.moduleIds : []) {
          const found = /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id);
          if (found?.[1]) folders.add(found[1]);
        }
      }
      const texts = [...folders].sort().map((folder) => {
        const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
          name: string;
          version: string;
          license?: string;
        };
        if (!about.license || !ALLOWED.includes(about.license)) {
          this.error(
            `${about.name} has the licence ${about.license ?? "(none)"}, which is not among ${ALLOWED.join(", ")}`,
          );
        }
        const text = readFileSync(join(folder, "LICENSE"), "utf8").trim();
        return `${about.name} ${about.version} (${about.license})\n\n${text}\n`;
      });
      this.emitFile({ type: "asset", fileName: "assets/licences.txt", source: texts.join("\n----\n\n") });
    },
  };
}

export default defineConfig({
  root: dirname(new URL(import.meta.url).pathname),
  base: "/console/",
  plugins: [licences()],
  // Compiles JSX for Preact without a plugin.
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    // Names of files below /console/assets/ have a hash of their content, so they can be cached forever.
    assetsDir: "assets",
    // The content security policy allows neither inline script nor scripts as data: URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
  },
  server: { proxy: { "/v1": service, "/identity": service, "/openapi.json": service } },
  test: {
    // Tests in a browser need the service's program. `cargo xtask console --test` sets ALLOT to its path.
    include: process.env.ALLOT ? ["src/**/*.test.ts", "tests/**/*.test.ts"] : ["src/**/*.test.ts"],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    fileParallelism: false,
  },
});
