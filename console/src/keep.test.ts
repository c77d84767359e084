import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { forget, keep, keepFor, kept } from "./keep";

/** Like a browser's storage, entries are also properties. */
function storage(texts: Record<string, string>): Storage {
  const methods = {
    getItem: (name: string) => texts[name] ?? null,
    setItem: (name: string, text: string) => void (texts[name] = text),
    removeItem: (name: string) => void delete texts[name],
  };
  return new Proxy(texts as unknown as Storage, {
    get: (_, name) => methods[name as keyof typeof methods],
  });
}

describe("what the browser keeps", () => {
  let [local, tab]: Record<string, string>[] = [{}, {}];
  beforeEach(() => {
    [local, tab] = [{ "other.app": "1" }, { "other.app": "2" }];
    vi.stubGlobal("localStorage", storage(local));
    vi.stubGlobal("sessionStorage", storage(tab));
  });
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  it("is of one user, and what others keep on the same origin stays", () => {
    keep("localStorage", "theme", "dark");
    expect(keepFor("ann")).toBe(false);
    keep("sessionStorage", "draft", "of ann");
    expect(keepFor("ann")).toBe(false);
    expect([kept("localStorage", "theme"), kept("sessionStorage", "draft")]).toEqual(["dark", "of ann"]);
    expect(keepFor("carl")).toBe(true);
    expect(local).toEqual({ "other.app": "1", "allot.owner": "carl" });
    expect(tab).toEqual({ "other.app": "2", "allot.owner": "carl" });
  });

  it("of an unknown user is shown to nobody", () => {
    keep("sessionStorage", "draft", "of an earlier version");
    keepFor("carl");
    expect(kept("sessionStorage", "draft")).toBeNull();
  });

  it("is removed by signing out", () => {
    keepFor("ann");
    keep("localStorage", "zone", "Europe/Paris");
    keep("sessionStorage", "draft", "of ann");
    forget();
    expect([local, tab]).toEqual([{ "other.app": "1" }, { "other.app": "2" }]);
  });

  it("may be nothing at all", () => {
    vi.unstubAllGlobals();
    keep("localStorage", "theme", "dark");
    expect(keepFor("ann")).toBe(false);
    forget();
    expect(kept("localStorage", "theme")).toBeNull();
  });
});
