/** The command of `npm run train:dictionary`: checks Node, then trains. For a new version of the dictionary alone. */
import './require-node.js';

const { trainDictionary } = await import('../bench/train-dictionary.ts');

process.exitCode = trainDictionary(process);
