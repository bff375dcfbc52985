// Where the pinned packages lie, and which version each one is.
//
// They are installed into a folder of their own ($POLLPACE_LIVE_PACKAGES), away from these programs, so they are imported by path.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

function folderOf(alias) {
    const packages = process.env.POLLPACE_LIVE_PACKAGES;
    if (!packages) throw new Error('POLLPACE_LIVE_PACKAGES is not set: it names the folder with node_modules; `run` sets it');
    return join(packages, 'node_modules', alias);
}

/** Imports one module of a package, such as `client/index.js`, by its path inside the package. */
export function importFrom(alias, path) {
    return import(pathToFileURL(join(folderOf(alias), path)).href);
}

/** The package's own name and version, which an alias hides. */
export function identityOf(alias) {
    const { name, version } = JSON.parse(readFileSync(join(folderOf(alias), 'package.json'), 'utf8'));
    return { package: name, version };
}
