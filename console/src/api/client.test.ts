import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { actFor, answer, onUserChanged, request, session } from "./client";

describe("requests", () => {
  const sent: Record<string, string>[] = [];
  let next = (): Response => new Response("{}");
  beforeEach(() => {
    sent.length = 0;
    next = () => new Response("{}");
    vi.stubGlobal("fetch", (_: string, init: { headers: Record<string, string> }) => {
      sent.push(init.headers);
      return Promise.resolve(next());
    });
  });
  afterEach(() => {
    vi.unstubAllGlobals();
  });
  const ann = { user: "zoë/1", user_name: null, project_id: "p", project_name: null, roles: [] };

  it("say for whom they are made, whatever they do, but for finding out who is signed in", async () => {
    await request("POST", "/v1/leases");
    actFor({ ...ann, authentication: "password", rules: {} });
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) await request(method, "/v1/leases");
    await session.end();
    await session.read();
    await session.start({});
    const made = { "X-Allot-User": "zo%C3%AB%2F1", "X-Allot-Project": "p" };
    for (const headers of sent.slice(1, 7)) expect(headers).toMatchObject(made);
    for (const headers of [sent[0], sent[7], sent[8]]) expect(headers).not.toHaveProperty("X-Allot-User");
  });

  it("that are refused since another user is signed in tell the page", async () => {
    const heard = vi.fn();
    onUserChanged(heard);
    next = () => new Response(JSON.stringify({ error_message: "no" }), { status: 409 });
    await expect(request("PUT", "/v1/leases/1")).rejects.toMatchObject({ status: 409 });
    expect(heard).not.toHaveBeenCalled();
    next = () => new Response(JSON.stringify({ error_message: "no" }), { status: 412 });
    await expect(request("PUT", "/v1/leases/1")).rejects.toMatchObject({ status: 412 });
    expect(heard).toHaveBeenCalledOnce();
  });

  it("ask whether a known answer has changed", async () => {
    next = () => new Response(`{"a":1}`, { headers: { ETag: `W/"1"` } });
    const known = await answer("GET", "/v1/calendar");
    expect(known).toEqual({ tag: `W/"1"`, body: { a: 1 } });
    next = () => new Response(null, { status: 304 });
    expect(await answer("GET", "/v1/calendar", { known })).toBe(known);
    expect(sent.map((headers) => headers["If-None-Match"])).toEqual([undefined, `W/"1"`]);
  });
});
