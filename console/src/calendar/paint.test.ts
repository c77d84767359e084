import { expect, it } from "vitest";
import { fitting } from "./paint";

/** Each character is 10 wide, except that `i` is 4 wide. */
const widths = new Float64Array(0x7f).fill(10);
widths["i".charCodeAt(0)] = 4;

it("a text is whole if there is room for it, and otherwise leaves room for an ellipsis", () => {
  expect(fitting("abc", widths, 12, 30)).toBe(3);
  expect(fitting("abc", widths, 12, 29)).toBe(1);
  expect(fitting("abc", widths, 12, 22)).toBe(1);
  expect(fitting("abc", widths, 12, 21)).toBe(0);
  expect(fitting("iiii", widths, 12, 16)).toBe(4);
  expect(fitting("", widths, 12, 0)).toBe(0);
});
