// Requirements for hosts: converts `rack=r1 and (gpu=a100 or vcpus>=64)` to the API's format,
// `["and", ["==", "$rack", "r1"], ...]`, and back. The command line has the same syntax. Pure.

export type Expression = [string, ...(string | Expression)[]];

/** A syntax error. `at` is the position in the text, from 0. */
export class WhereError extends Error {
  constructor(
    message: string,
    readonly at: number,
  ) {
    super(message);
  }
}

interface Token {
  text: string;
  kind: "word" | "operator" | "open" | "close";
  at: number;
}

const TOKEN = /\s*(?:(\()|(\))|(==|!=|>=|<=|=|>|<)|"([^"]*)"|'([^']*)'|([^\s()=!<>"']+))/y;
/** Maximum depth of parentheses. The API has the same limit. */
const DEEPEST = 16;

function tokens(text: string): Token[] {
  const found: Token[] = [];
  TOKEN.lastIndex = 0;
  while (text.slice(TOKEN.lastIndex).trim()) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (!match) throw new WhereError(`cannot read “${text.slice(at).trim().slice(0, 20)}”`, at);
    const [, open, close, operator, double, single, word] = match;
    const kind = open ? "open" : close ? "close" : operator ? "operator" : "word";
    found.push({ kind, text: open ?? close ?? operator ?? double ?? single ?? word ?? "", at });
  }
  return found;
}

/** Null if the text is empty: any host. Throws a `WhereError`. */
export function parseWhere(text: string): Expression | null {
  const list = tokens(text);
  let next = 0;
  const peek = (): Token | undefined => list[next];
  const end = text.length;

  const comparison = (depth: number): Expression => {
    const token = list[next];
    if (token?.kind === "open") {
      if (depth >= DEEPEST) throw new WhereError(`parentheses are nested more than ${DEEPEST} deep`, token.at);
      next += 1;
      const inner = either(depth + 1);
      const close = list[next];
      if (close?.kind !== "close") throw new WhereError("missing “)”", close?.at ?? end);
      next += 1;
      return inner;
    }
    if (token?.kind !== "word") {
      throw new WhereError(
        `expected a property such as rack, got ${token ? `“${token.text}”` : "the end"}`,
        token?.at ?? end,
      );
    }
    const operator = list[next + 1];
    if (operator?.kind !== "operator") {
      throw new WhereError(`expected = , != , >= , <= , > or < after “${token.text}”`, operator?.at ?? end);
    }
    const value = list[next + 2];
    if (value?.kind !== "word") throw new WhereError(`missing value after “${token.text} ${operator.text}”`, end);
    next += 3;
    return [operator.text === "=" ? "==" : operator.text, `$${token.text.replace(/^\$/, "")}`, value.text];
  };
  const joined =
    (word: string, part: (depth: number) => Expression) =>
    (depth: number): Expression => {
      const parts = [part(depth)];
      while (peek()?.kind === "word" && peek()?.text.toLowerCase() === word) {
        next += 1;
        parts.push(part(depth));
      }
      const [only] = parts;
      return parts.length === 1 && only ? only : [word, ...parts];
    };
  const both = joined("and", comparison);
  const either = joined("or", both);

  if (list.length === 0) return null;
  const whole = either(0);
  const rest = peek();
  if (rest) throw new WhereError(`expected “and” or “or”, got “${rest.text}”`, rest.at);
  return whole;
}

/** JSON in a string, as in requests. Empty: any host. Throws a `WhereError`. */
export function whereJson(text: string): string {
  const expression = parseWhere(text);
  return expression ? JSON.stringify(expression) : "";
}

/** Inverse of `whereJson`. Returns other JSON unchanged. */
export function showWhere(json: string): string {
  const show = (value: unknown, inside: boolean): string => {
    if (!Array.isArray(value)) throw new Error("not an expression");
    const [operator, ...rest] = value as unknown[];
    if (operator === "and" || operator === "or") {
      const text = rest.map((part) => show(part, true)).join(` ${operator} `);
      return inside && rest.length > 1 ? `(${text})` : text;
    }
    const [property, wanted] = rest;
    if (typeof operator !== "string" || typeof property !== "string" || rest.length !== 2)
      throw new Error("not a comparison");
    const plain = String(wanted);
    const quoted = /^[^\s()=!<>"']+$/.test(plain) ? plain : plain.includes('"') ? `'${plain}'` : `"${plain}"`;
    return `${property.replace(/^\$/, "")}${operator === "==" ? "=" : operator}${quoted}`;
  };
  if (!json.trim()) return "";
  try {
    return show(JSON.parse(json), false);
  } catch {
    return json;
  }
}

/** Requires one of these hosts. Empty: any host. */
export function onlyHosts(names: readonly string[]): string {
  const parts = names.map((name): Expression => ["==", "$hypervisor_hostname", name]);
  const [only] = parts;
  return only ? JSON.stringify(parts.length === 1 ? only : ["or", ...parts]) : "";
}

/** Converts a duration such as `2d`, `4h 30m` or `1w` to minutes. Null if it is invalid or 0. */
export function parseLength(text: string): number | null {
  const units: Record<string, number> = { m: 1, min: 1, h: 60, d: 1440, w: 10080 };
  const parts = [...text.trim().matchAll(/(\d+(?:\.\d+)?)\s*(min|[mhdw])[a-z]*\s*/giy)];
  if (
    parts.length === 0 ||
    parts
      .map((part) => part[0])
      .join("")
      .trim() !== text.trim()
  )
    return null;
  const minutes = Math.round(
    parts.reduce((sum, [, count, unit]) => sum + Number(count) * (units[(unit ?? "").toLowerCase()] ?? 0), 0),
  );
  return minutes > 0 ? minutes : null;
}
