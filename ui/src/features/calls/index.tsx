export function CallsPage() { return null; }
export function ComparePage() { return null; }
