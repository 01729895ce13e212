"""The words of the sample clinic: French names and places, animals and what is said of them.

Nothing here points at anybody. Family and first names are common ones, put together at random;
towns are invented and their postal codes begin with 96, which no French department uses;
telephone prefixes are those set apart for fiction; mail domains are example ones.
"""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FAMILY_NAMES = _words(
    "Martin Bernard Dubois Thomas Robert Richard Petit Durand Leroy Moreau Simon Laurent Lefebvre "
    "Michel Garcia David Bertrand Roux Vincent Fournier Morel Girard André Mercier Dupont Lambert "
    "Bonnet François Martinez Legrand Garnier Faure Rousseau Blanc Guérin Muller Henry Roussel "
    "Nicolas Perrin Morin Mathieu Clément Gauthier Dumont Lopez Fontaine Chevalier Robin Masson "
    "Sanchez Gérard Nguyen Boyer Denis Lemaire Duval Joly Gautier Roger Roche Roy Noël Meyer "
    "Lucas Meunier Jean Pérez Marchand Dufour Blanchard Marie Barbier Brun Dumas Brunet Schmitt "
    "Leroux Colas Fernandez Renard Arnaud Rolland Caron Aubert Giraud Leclerc Vidal Bourgeois "
    "Renaud Lemoine Picard Gaillard Philippe Leclercq Lacroix Fabre Dupuis Olivier Rodriguez "
    "Lefèvre Châtelain Bénard Pélissier D'Almeida L'Hermitte Le-Gall Saint-Martin N'Diaye Benoît "
    "Cordonnier"
)

FIRST_NAMES = _words(
    "Marie Jean Pierre Michel Philippe Nathalie Isabelle Alain Catherine Patrick Sylvie Nicolas "
    "Christophe Martine Anne Christian Françoise Daniel Julien Stéphane Valérie Céline Éric "
    "Laurent Sandrine Thomas Sophie Sébastien Véronique Olivier Frédéric David Monique Chantal "
    "Élodie Aurélie Kévin Émilie Camille Pauline Léa Hugo Chloé Inès Zoé Noémie Maëlle Loïc Gaël "
    "Anaïs Jérôme Benoît Éléonore Hélène Théo Raphaël Agnès Jean-Pierre Anne-Sophie Marie-Claude "
    "Jean-Luc Marie-Ange"
)

NOTABLE_CLIENTS = (  # always among the clients: accents, hyphens, apostrophes
    ("Mme", "Lefèvre", "Éléonore"),
    ("M.", "Châtelain", "François"),
    ("M.", "D'Almeida", "Jean-Pierre"),
    ("Mme", "Saint-Martin", "Anne-Sophie"),
    ("M.", "L'Hermitte", "Loïc"),
    ("Mme", "Noël", "Maëlle"),
    ("M.", "N'Diaye", "Gaël"),
    ("Mme", "Bénard", "Zoé"),
)

CLIENT_COMPANIES = (
    "Haras de Brumeval",
    "Élevage du Val Fictif",
    "Refuge de Clairfontelle",
    "EARL des Trois Sornettes",
    "Ferme d'Outreplaine",
    "Pension canine de Sablemont",
    "Chatterie de l'Orée Bleue",
    "SCEA du Moulin d'Exemple",
    "Association Les Pattes d'Exemple",
    "Centre équestre de Vallombreuse-le-Pré",
    "Parc animalier de Fictiville",
    "SARL Exemple & Fils",
)

SUPPLIERS = (
    "Centrale Véto Exemple",
    "Laboratoires Fictalia",
    "Comptoir d'Exemple Santé Animale",
    "Dépôt Médical Brumeval",
    "Nutri-Exemple SAS",
    "Établissements Sornette",
    "Matériel Clinique d'Outreplaine",
    "Biologie Exemplis",
)

STREETS = (
    "rue des Lilas",
    "rue de l'Église",
    "avenue de la Gare",
    "chemin des Vignes",
    "impasse du Lavoir",
    "place du Marché",
    "rue du Général-Moulin",
    "allée des Tilleuls",
    "route de Brumeval",
    "rue des Écoles",
    "boulevard du Château",
    "quai des Brumes",
    "sentier de la Fontaine",
    "rue de la Forêt",
)

SECOND_LINES = (
    "Bâtiment B",
    "Appartement 12",
    "Lieu-dit La Grange",
    "Résidence Les Pins",
    "3e étage",
)

TOWNS = (
    ("96100", "Fictiville"),
    ("96110", "Brumeval"),
    ("96120", "Saint-Exemple-sur-Onde"),
    ("96130", "Outreplaine"),
    ("96140", "Clairfontelle"),
    ("96150", "L'Étang-d'Exemple"),
    ("96160", "Sablemont"),
    ("96170", "Vallombreuse-le-Pré"),
)

LANDLINES = ("01 99 00", "02 61 91", "03 53 01", "04 65 71", "05 36 49")
MOBILE = "06 39 98"
MAIL_DOMAINS = ("example.fr", "example.com", "example.org")

SPECIES = (
    ("CN", "Chien"),
    ("CT", "Chat"),
    ("LA", "Lapin"),
    ("OI", "Oiseau"),
    ("NA", "NAC"),
    ("FU", "Furet"),
    ("EQ", "Équidé"),
)
SPECIES_WEIGHTS = (50, 36, 5, 3, 3, 2, 1)
CARNIVORES = ("CN", "CT")

BREEDS = {
    "CN": (
        "Labrador Retriever",
        "Golden Retriever",
        "Berger Australien",
        "Berger Allemand",
        "Border Collie",
        "Épagneul Breton",
        "Beagle",
        "Jack Russell",
        "Bouledogue Français",
        "Yorkshire Terrier",
        "Cavalier King Charles",
        "Croisé",
    ),
    "CT": (
        "Européen",
        "Maine Coon",
        "Sacré de Birmanie",
        "Siamois",
        "Chartreux",
        "Persan",
        "Bengal",
    ),
    "LA": ("Nain", "Bélier", "Angora", "Géant des Flandres"),
    "OI": ("Perruche ondulée", "Canari", "Gris du Gabon", "Calopsitte"),
    "NA": ("Cochon d'Inde", "Hamster doré", "Chinchilla", "Octodon", "Tortue d'Hermann"),
    "FU": ("Furet putoisé", "Furet albinos"),
    "EQ": ("Selle Français", "Poney Shetland", "Âne du Poitou"),
}

WEIGHTS = {  # lightest and heaviest, in hundreds of grams
    "CN": (25, 480),
    "CT": (22, 78),
    "LA": (9, 52),
    "OI": (1, 5),
    "NA": (1, 21),
    "FU": (7, 19),
    "EQ": (1400, 5600),
}

ANIMAL_NAMES = _words(
    "Rex Minette Caramel Noisette Filou Câline Oscar Ulysse Nala Simba Plume Réglisse Vanille "
    "Cookie Prune Gribouille Félix Chipie Biscotte Moustache Ficelle Tigrou Isis Orphée Perle "
    "Praline Pacha Roméo Olympe Lulu Snoopy Gaïa Jazz Mirabelle Nougat Balou Pépita Tempête "
    "Ushuaïa Zorro Zélie Pollux Bulle Grisou Colette Marius Fripouille Titus Loukoum Domino "
    "Cannelle Éclair Hermès Pixel"
)

COATS = (
    "noir",
    "noir et blanc",
    "fauve",
    "sable",
    "roux",
    "tigré",
    "tricolore",
    "bleu merle",
    "blanc",
    "gris",
    "écaille de tortue",
    "chocolat",
)

ALERTS = (
    "Agressif",
    "Allergie pénicilline",
    "Mord à la manipulation",
    "Cardiaque",
    "Épileptique",
    "Diabétique",
    "Risque anesthésique",
    "Muselière obligatoire",
    "Insuffisance rénale",
)

DESKS = ("ACCUEIL", "ACCUEIL2", "ASV1", "ASV2")
