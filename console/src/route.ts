// Addresses of views, such as `#/leases?find=TEXT`. They are fragments, so the service serves a single document.

import { useEffect, useState } from "preact/hooks";

export interface Route {
  /** Decoded parts of the path: `["leases", "ID"]`. */
  parts: string[];
  query: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path
    .split("/")
    .filter(Boolean)
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
  return { parts, query: new URLSearchParams(search) };
}

export function href(parts: readonly string[], query: Record<string, string | null | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value);
  return `#/${parts.map(encodeURIComponent).join("/")}${search.size > 0 ? `?${search}` : ""}`;
}

export function go(parts: readonly string[], query: Record<string, string | null | undefined> = {}): void {
  location.hash = href(parts, query);
}

/** Changes the address without a new entry in the history, because the view stays the same. */
export function adjust(parts: readonly string[], query: Record<string, string | null | undefined>): void {
  const next = href(parts, query);
  if (next !== location.hash) history.replaceState(null, "", next);
}

export function useRoute(): Route {
  const [route, set] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const follow = (): void => set(parseRoute(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return route;
}
