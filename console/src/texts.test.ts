import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { t } from "./texts";

const sources = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory()
      ? sources(join(folder, entry.name))
      : /\.tsx?$/.test(entry.name) && !/test|texts/.test(entry.name)
        ? [readFileSync(join(folder, entry.name), "utf8")]
        : [],
  );

describe("texts", () => {
  it("are all shown somewhere", () => {
    const code = sources(new URL(".", import.meta.url).pathname).join("\n");
    const unused: string[] = [];
    const look = (of: object, path: string): void => {
      for (const [name, value] of Object.entries(of)) {
        const here = `${path}.${name}`;
        // A group that is looked up by a computed name is used as a whole.
        const whole = new RegExp(`${here.replaceAll(".", "\\.")}\\b(?!\\.)`).test(code);
        if (typeof value === "object") {
          if (!whole) look(value, here);
        } else if (!whole) unused.push(here);
      }
    };
    look(t, "t");
    expect(unused).toEqual([]);
  });
});
