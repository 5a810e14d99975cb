// Prints the licences of the modules of a package-lock.json that the packages need when they run, with the texts of those that are
// installed. It ends with an error if a module has no licence, or none of ALLOWED.
//
//   node npmlicences.mjs package-lock.json
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const ALLOWED = ["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0", "ISC", "MIT", "Python-2.0", "Unlicense"];
// Modules that name their licence in other words.
const NAMES = { "nrf-intel-hex": "BSD-3-Clause" };

const lock = resolve(process.argv[2]);
const modules = Object.entries(JSON.parse(readFileSync(lock, "utf8")).packages)
  .filter(([path, { dev }]) => path.includes("node_modules/") && !path.includes("@hubcloud/") && !dev);

/** Returns the folder of a module: beside the lock file, or in a folder above it. */
function folder(path) {
  for (let dir = dirname(lock); ; dir = dirname(dir)) {
    if (existsSync(join(dir, path, "package.json"))) return join(dir, path);
    if (dir === dirname(dir)) return undefined;
  }
}

console.log(`The packages @hubcloud/hub, @hubcloud/zwave and @hubcloud/zigbee2mqtt are licensed under the Apache License 2.0. npm installs
the modules that follow with them, each under its own licence.`);
for (const [path, module] of modules) {
  const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
  const { version, license = "" } = { ...module, ...NAMES[name] && { license: NAMES[name] } };
  const choices = license.replace(/[()]/g, "").split(" OR ");
  if (!choices.some((each) => each.split(" AND ").every((part) => ALLOWED.includes(part)))) {
    console.error(`${name} ${version}: the licence is ${license || "missing"}`);
    process.exit(1);
  }
  const title = `${name} ${version}: ${license}`, dir = folder(path);
  console.log(`\n${title}\n${"=".repeat(title.length)}`);
  const texts = dir ? readdirSync(dir).filter((each) => /^(licen[cs]e|copying|notice)/i.test(each)).sort() : [];
  for (const each of texts) console.log(`\n${readFileSync(join(dir, each), "utf8").trim()}`);
}
