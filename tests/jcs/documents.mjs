// Random JSON documents, each in an odd spelling and as RFC 8785 has it. ECMAScript is the reference: its
// JSON.stringify writes numbers and texts as the RFC asks, and sorts names as UTF-16 code units.
//   node documents.mjs SEED COUNT   prints two lines a document: base64 of the spelling, base64 of the canonical text
let state = BigInt(process.argv[2]) & 0xffffffffffffffffn;
const next = () => {  // splitmix64
  state = (state + 0x9e3779b97f4a7c15n) & 0xffffffffffffffffn;
  let z = state;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & 0xffffffffffffffffn;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & 0xffffffffffffffffn;
  return z ^ (z >> 31n);
};
const below = (n) => Number(next() % BigInt(n));
const pick = (list) => list[below(list.length)];

const double = () => {
  const view = new DataView(new ArrayBuffer(8));
  for (;;) {
    view.setBigUint64(0, next());
    const value = view.getFloat64(0);
    if (Number.isFinite(value)) return value;
  }
};
const number = () =>
  pick([() => below(10), () => below(1e9) - 5e8, () => below(1e6) / 1e3, double, () => 0, () => -0,
        () => 2 ** below(1024), () => Number.MIN_VALUE * below(9), () => 1e21, () => 1e-7, () => 5e-324,
        () => 9007199254740993, () => 333333333.33333329])();
const spellNumber = (value) => {
  const plain = Object.is(value, -0) ? pick(["-0", "-0.0", "0"]) : String(value);
  return pick([plain, value.toExponential(20).replace("e+", pick(["e", "E", "e+", "E+0"])), plain]);
};

const characters = ["a", "Z", "0", " ", '"', "\\", "/", "\b", "\f", "\n", "\r", "\t", "\u0000", "\u001f", "\u007f", "\u0080",
                    "\u00e4", "\u20ac", "\u2028", "\ud7ff", "\ue000", "\ufb33", "\uffff", "\u{1f600}", "\u{10000}", "\u{10ffff}"];
const text = () => Array.from({ length: below(6) }, () => pick(characters)).join("");
const spellText = (value) => {
  let out = '"';
  for (const unit of value) {
    const escaped = [...unit.split("")].map((c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")).join("");
    const must = unit === '"' || unit === "\\" || unit < " ";
    const short = { '"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t" }[unit];
    out += must ? pick([short ?? escaped, escaped]) : pick([unit, unit, unit, escaped, short ?? unit]);
  }
  return out + '"';
};

const blank = () => pick(["", "", " ", "\t", "\r\n", "  "]);
const value = (depth) => {
  const kind = depth > 4 ? below(5) : below(7);
  if (kind < 2) return number();
  if (kind < 4) return text();
  if (kind === 4) return pick([true, false, null]);
  if (kind === 5) return Array.from({ length: below(5) }, () => value(depth + 1));
  return new Map(Array.from({ length: below(6) }, () => [text(), value(depth + 1)]));
};
const spell = (v) => {
  let out;
  if (typeof v === "number") out = spellNumber(v);
  else if (typeof v === "string") out = spellText(v);
  else if (Array.isArray(v)) out = "[" + v.map(spell).join(",") + (v.length ? "" : blank()) + "]";
  else if (v instanceof Map)
    out = "{" + [...v].sort(() => below(3) - 1).map(([k, m]) => blank() + spellText(k) + blank() + ":" + spell(m)).join(",") + "}";
  else out = String(v);
  return blank() + out + blank();
};
const canonical = (v) => {
  if (Array.isArray(v)) return "[" + v.map(canonical).join(",") + "]";
  if (!(v instanceof Map)) return JSON.stringify(v);
  return "{" + [...v.keys()].sort().map((k) => JSON.stringify(k) + ":" + canonical(v.get(k))).join(",") + "}";
};

const out = [];
for (let n = Number(process.argv[3]); n > 0; --n) {
  const v = value(0);
  out.push(Buffer.from(spell(v)).toString("base64"), Buffer.from(canonical(v)).toString("base64"));
}
process.stdout.write(out.join("\n") + "\n");
