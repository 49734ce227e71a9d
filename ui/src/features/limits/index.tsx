export function LimitsPage() { return null; }
