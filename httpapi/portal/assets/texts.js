// The texts of the page's scripts, which come with the page (package text).

const LONGEST_VALUE = 200; // characters of a value in a text

let texts = new Map();

export function setTexts(byName) {
  texts = new Map(Object.entries(byName));
}

export const hasText = (name) => texts.has(name);

// textOf returns the text of that name, with values in place of its placeholders. A value that is
// missing is a dash.
export const textOf = (name, values = {}) => (texts.get(name) ?? name).replace(/\{(\w+)\}/g, (_, key) => truncate(String(values[key] ?? "–"), LONGEST_VALUE));

// truncate returns the first characters of a text, with an ellipsis if more follow.
export const truncate = (text, longest) => (text.length > longest ? `${[...text.slice(0, 2 * longest)].slice(0, longest).join("")}…` : text);
