// Writes the types of the API's bodies, `src/api/schema.ts`, from what the service says of itself in /openapi.json.
// `cargo xtask console --schema` runs it with the service's program in $ALLOT.
//
// The result is checked in: the console is built before the program that holds it, so no service is there to ask. A test
// compares it with what the program says.
import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";

export const target = new URL("../src/api/schema.ts", import.meta.url);

/** The types as text. */
export async function typesOf(document) {
  // Paths repeat each body of an error in full, twenty times the size of all that is used here.
  const reduced = {
    openapi: document.openapi,
    info: document.info,
    paths: {},
    components: { schemas: document.components.schemas },
  };
  const types = astToString(await openapiTS(reduced));
  return `// Written by scripts/schema.mjs from the service's /openapi.json. Do not change it by hand.\n${types}`;
}

async function documentOf(program) {
  const port = 20_000 + Math.floor(Math.random() * 30_000);
  const service = spawn(program, ["serve", "--database", "memory", "--listen", `127.0.0.1:${port}`], {
    stdio: "ignore",
  });
  try {
    for (let tries = 0; ; tries += 1) {
      try {
        return await (await fetch(`http://127.0.0.1:${port}/openapi.json`)).json();
      } catch (error) {
        if (tries > 100) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  } finally {
    service.kill();
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await writeFile(target, await typesOf(await documentOf(process.env.ALLOT ?? "allot")));
}
