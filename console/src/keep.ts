// Entries of the console in the browser's storage. Their names begin with `allot.`. All belong to one user and project.

const PREFIX = "allot.";
const KINDS = ["localStorage", "sessionStorage"] as const;
type Kind = (typeof KINDS)[number];

// Private windows can forbid storage. Nothing outlives the page then.
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

/** Removes the console's entries in this browser (`localStorage`) and in this tab (`sessionStorage`). */
export function forget(kinds: readonly Kind[] = KINDS): void {
  for (const kind of kinds) {
    for (const name of attempt(() => Object.keys(globalThis[kind])) ?? [])
      if (name.startsWith(PREFIX)) keep(kind, name.slice(PREFIX.length), null);
  }
}

/** Removes the entries of another user and assigns the rest to this one. Returns whether there was another user. */
export function keepFor(who: string): boolean {
  let another = false;
  for (const kind of KINDS) {
    const owner = kept(kind, "owner");
    if (owner === who) continue;
    // Preferences can be set before the first sign-in. A draft without an owner could be from any user.
    if (owner !== null || kind === "sessionStorage") forget([kind]);
    another ||= owner !== null;
    keep(kind, "owner", who);
  }
  return another;
}
