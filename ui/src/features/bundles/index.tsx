export function BundlesPage() { return null; }
