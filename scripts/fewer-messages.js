/** zod loads its messages in 64 languages: a tenth of the time of a simple command, and 5 MB in each thread. One is enough. */
import { registerHooks } from 'node:module';

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === '../locales/index.js' ? '../locales/en.js' : specifier, context),
});
