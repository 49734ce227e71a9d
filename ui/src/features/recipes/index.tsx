export function RecipesPage() { return null; }
