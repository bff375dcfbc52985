// Decisions of an exported policy: `decide.mjs POLICY.ts STEPS`, where a step is a line of JSON. The policy is type-checked first.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.POLLPACE_NODE_MODULES, "package.json"));
const ts = require("typescript");

const [file, steps] = process.argv.slice(2);
const options = {
  strict: true, noUnusedLocals: true, target: ts.ScriptTarget.ES2020, module: ts.ModuleKind.ES2020, lib: ["lib.es2020.d.ts"], noEmit: true, types: [],
};
const wrong = ts.getPreEmitDiagnostics(ts.createProgram([file], options));
if (wrong.length > 0) {
  console.error(ts.formatDiagnostics(wrong, { getCanonicalFileName: (f) => f, getCurrentDirectory: () => "", getNewLine: () => "\n" }));
  process.exit(1);
}
const script = join(mkdtempSync(join(tmpdir(), "policy-")), "policy.mjs");
writeFileSync(script, ts.transpileModule(readFileSync(file, "utf8"), { compilerOptions: { ...options, noEmit: false } }).outputText);
const { decide, newState } = await import(pathToFileURL(script));

let state = newState();
const out = [];
for (const line of readFileSync(steps, "utf8").trim().split("\n")) {
  const { saw, hint, u, is_new: isNew } = JSON.parse(line);
  if (saw === "created") state = newState();
  const next = decide(state, { kind: saw, hint, isNew }, BigInt(u));
  out.push(next.kind === "wait" ? `wait ${next.waitNs}` : next.kind === "end" ? `end ${next.why}` : next.kind);
}
console.log(out.join("\n"));
