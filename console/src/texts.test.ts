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
        // A group that is indexed by a computed name counts as used.
        const whole = new RegExp(`\\b${here.replaceAll(".", "\\.")}\\b(?!\\.)`).test(code);
        if (typeof value === "object") {
          if (!whole) look(value, here);
        } else if (!whole) unused.push(here);
      }
    };
    look(t, "t");
    expect(unused).toEqual([]);
  });

  it("say whether a count of instances is proven", () => {
    const fits = (count: number, wanted: number | null, exact: boolean, proven: boolean): string =>
      t.placement.fits({ count, wanted, exact, proven });
    expect(fits(2, null, true, true)).toBe("2 instances fit");
    expect(fits(2, null, true, false)).toBe("2 instances fit; no way was found for more");
    expect(fits(500, null, false, false)).toBe("500 instances or more fit");
    expect(fits(3, 3, false, false)).toBe("Yes: 3 instances fit");
    expect(fits(1, 3, true, true)).toBe("No: only 1 of 3 instances fits");
    expect(fits(2, 3, true, false)).toBe("No: no way was found for more than 2 of 3 instances");
    expect(fits(65536, 70000, false, false)).toBe("No: counting stopped at 65536 of 70000 instances, more may fit");
  });
});
