// Writes the types of the API's bodies, `src/api/schema.ts`, from the service's own description:
//
//   node scripts/schema.mjs FILE-OR-URL [--check]
//
// The result is checked in: the console is built before the binary that holds it, so no service is there to ask.
// `cargo xtask test --only console` compares it with what the binary says (`--check`).
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const [source, check] = process.argv.slice(2);
if (!source) {
  console.error("usage: node scripts/schema.mjs FILE-OR-URL [--check]");
  process.exit(2);
}
const text = source.startsWith("http") ? await (await fetch(source)).text() : await readFile(source, "utf8");
const document = JSON.parse(text);
// Paths repeat each body of an error in full, twenty times the size of all that is used here.
const reduced = { openapi: document.openapi, info: document.info, paths: {}, components: { schemas: document.components.schemas } };
const types = astToString(await openapiTS(reduced));
const written = `// Written by scripts/schema.mjs from the service's /openapi.json. Do not change it by hand.\n${types}`;
const target = new URL("../src/api/schema.ts", import.meta.url);
if (check === "--check") {
  if ((await readFile(target, "utf8")) !== written) {
    console.error("src/api/schema.ts is not what /openapi.json says: run `cargo xtask console --schema`");
    process.exit(1);
  }
} else {
  await writeFile(target, written);
}
