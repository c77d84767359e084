import { describe, expect, it } from "vitest";
import { onlyHosts, parseLength, parseWhere, showWhere, WhereError, whereJson } from "./where";

describe("what hosts must be like", () => {
  it("is read as the API takes it", () => {
    expect(parseWhere("rack=r1")).toEqual(["==", "$rack", "r1"]);
    expect(parseWhere("rack=r1 and (gpu=a100 or vcpus >= 64)")).toEqual([
      "and",
      ["==", "$rack", "r1"],
      ["or", ["==", "$gpu", "a100"], [">=", "$vcpus", "64"]],
    ]);
    expect(parseWhere(`name="a b" or x!='c'`)).toEqual(["or", ["==", "$name", "a b"], ["!=", "$x", "c"]]);
    expect(whereJson("  ")).toBe("");
  });
  it("says what is wrong and where", () => {
    for (const text of [
      "rack",
      "rack=",
      "=r1",
      "rack=r1 gpu=a100",
      "(rack=r1",
      "rack=r1)",
      "rack=r1 and",
      '"',
      "(".repeat(40),
    ]) {
      expect(() => parseWhere(text), text).toThrow(WhereError);
    }
  });
  it("is shown as it was written", () => {
    for (const text of ["rack=r1", "rack=r1 and (gpu=a100 or vcpus>=64)", 'name="a b"']) {
      expect(showWhere(whereJson(text))).toBe(text);
    }
    expect(showWhere('["unknown"]')).toBe('["unknown"]');
    expect(showWhere("")).toBe("");
  });
  it("can name hosts", () => {
    expect(onlyHosts(["a"])).toBe('["==","$hypervisor_hostname","a"]');
    expect(JSON.parse(onlyHosts(["a", "b"]))[0]).toBe("or");
    expect(onlyHosts([])).toBe("");
  });
});

describe("a length", () => {
  it("is read in words", () => {
    expect(["2d", "4h 30m", "1w", "90 min", "1.5h", "2 days"].map(parseLength)).toEqual([
      2880, 270, 10080, 90, 90, 2880,
    ]);
    expect(["", "x", "4", "4h x", "0m", "-1h"].map(parseLength)).toEqual([null, null, null, null, null, null]);
  });
});
