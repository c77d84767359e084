// What the browser keeps for the console: texts whose names begin with `allot.`, all of them of one user and project.

const PREFIX = "allot.";
const KINDS = ["localStorage", "sessionStorage"] as const;
type Kind = (typeof KINDS)[number];

// Private windows may forbid storage; what is kept then lasts as long as the page.
function attempt<T>(action: () => T): T | null {
  try {
    return action();
  } catch {
    return null;
  }
}

export const kept = (kind: Kind, name: string): string | null =>
  attempt(() => globalThis[kind].getItem(PREFIX + name));

export function keep(kind: Kind, name: string, text: string | null): void {
  attempt(() => {
    if (text === null) globalThis[kind].removeItem(PREFIX + name);
    else globalThis[kind].setItem(PREFIX + name, text);
  });
}

/** Removes everything that the console keeps in this browser (`localStorage`) and in this tab (`sessionStorage`). */
export function forget(kinds: readonly Kind[] = KINDS): void {
  for (const kind of kinds) {
    for (const name of attempt(() => Object.keys(globalThis[kind])) ?? [])
      if (name.startsWith(PREFIX)) keep(kind, name.slice(PREFIX.length), null);
  }
}

/** Removes what another user left, and keeps the rest for this one. Returns whether there was another. */
export function keepFor(who: string): boolean {
  let another = false;
  for (const kind of KINDS) {
    const owner = kept(kind, "owner");
    if (owner === who) continue;
    // Preferences are set before the first sign-in as well; a draft without an owner is of an unknown user.
    if (owner !== null || kind === "sessionStorage") forget([kind]);
    another ||= owner !== null;
    keep(kind, "owner", who);
  }
  return another;
}
