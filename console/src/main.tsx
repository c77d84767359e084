import { render } from "preact";
import { App } from "./app";

const root = document.getElementById("console");
if (root) render(<App />, root);
