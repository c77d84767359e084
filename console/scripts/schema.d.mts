export const target: URL;
export function typesOf(document: unknown): Promise<string>;
