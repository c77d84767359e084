import { describe, expect, it } from "vitest";
import type { Offer } from "./api/client";
import { HOUR } from "./calendar/geometry";
import { type Draft, emptyDraft, requestOf, withOffer } from "./draft";

const now = Date.parse("2030-01-02T10:03:00Z");
const body = (change: Partial<Draft>) => {
  const request = requestOf({ ...emptyDraft(now), name: "x", ...change }, now);
  if ("wrong" in request) throw new Error(request.field);
  return request.body;
};
const wrong = (change: Partial<Draft>): string => {
  const request = requestOf({ ...emptyDraft(now), name: "x", ...change }, now);
  return "wrong" in request ? request.field : "";
};

describe("a request for a lease", () => {
  it("begins at a quarter of an hour to come, for two hours", () => {
    expect(body({})).toMatchObject({ start_date: "2030-01-02T10:15:00Z", end_date: "2030-01-02T12:15:00Z" });
  });
  it("is for hosts that are like that, or for these only", () => {
    expect(body({ min: 2, max: 4, where: "rack=r1" }).reservations?.[0]).toMatchObject({
      min: 2,
      max: 4,
      resource_properties: '["==","$rack","r1"]',
      hypervisor_properties: "",
    });
    expect(body({ only: ["a"] }).reservations?.[0]).toMatchObject({
      hypervisor_properties: '["==","$hypervisor_hostname","a"]',
    });
  });
  it("is for instances, or for those of a flavor", () => {
    expect(body({ kind: "instances", amount: 3, memory: 1.5 }).reservations?.[0]).toMatchObject({
      resource_type: "virtual:instance",
      amount: 3,
      memory_mb: 1536,
    });
    expect(body({ kind: "flavor", flavor: "m1" }).reservations?.[0]).toMatchObject({
      resource_type: "flavor:instance",
      flavor_id: "m1",
    });
  });
  it("has a length instead of dates where it starts when it can", () => {
    expect(body({ type: "BEST-EFFORT", timeout: "3h" })).toMatchObject({
      lease_type: "BEST-EFFORT",
      duration: "120m",
      timeout: "180m",
    });
    expect(body({ type: "IMMEDIATE", waitlist: true })).toEqual(
      expect.not.objectContaining({ waitlist: true, start_date: expect.anything() }),
    );
  });
  it("starts now where it was to start a moment ago", () => {
    expect(body({ start: now - 5 * 60_000, end: now + HOUR })).toMatchObject({ start_date: "now" });
  });
  it("names the field that is wrong", () => {
    expect(wrong({ where: "rack=" })).toBe("where");
    expect(wrong({ end: now - HOUR })).toBe("end");
    expect(wrong({ start: now - HOUR, end: now + HOUR })).toBe("start");
    expect(wrong({ type: "BEST-EFFORT", timeout: "soon" })).toBe("timeout");
    expect(wrong({ kind: "flavor" })).toBe("flavor");
  });
  it("becomes what is offered", () => {
    const lease = {
      start_date: "2030-01-03T00:00:00.000000",
      end_date: "2030-01-03T01:00:00.000000",
      reservations: [{ resource_type: "physical:host", min: 1, max: 2 }],
    };
    const draft = withOffer({ ...emptyDraft(now), min: 4, max: 4 }, { lease } as unknown as Offer, now);
    expect(draft).toMatchObject({
      min: 1,
      max: 2,
      start: Date.parse("2030-01-03T00:00:00Z"),
      end: Date.parse("2030-01-03T01:00:00Z"),
    });
  });
  it("has the timeout that is offered, and what it had of everything else", () => {
    const lease = { timeout_date: new Date(now + 90_000).toISOString() };
    const draft: Draft = { ...emptyDraft(now), type: "BEST-EFFORT", timeout: "1m" };
    const offer = { lease, kind: "longer_timeout" } as unknown as Offer;
    expect(withOffer(draft, offer, now)).toEqual({ ...draft, timeout: "2m" });
  });
});
