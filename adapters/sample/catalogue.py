"""What the sample clinic offers: its kinds of appointments, its acts and the goods on its shelves.

Prices are in cents before tax and stay on steps of ten, so that a quantity in halves and either
rate of tax give whole cents: every order of rounding then finds the same total.
"""

from typing import NamedTuple


class Kind(NamedTuple):
    """A row of TYPES_RDV."""

    id_type: int
    libelle: str
    duree_min: int
    couleur: int
    actif: str


KINDS = (
    Kind(1, "Consultation", 30, 0x4CAF50, "O"),
    Kind(2, "Vaccination", 15, 0x2196F3, "O"),
    Kind(3, "Chirurgie", 90, 0xF44336, "O"),
    Kind(4, "Urgence", 30, 0xFF5722, "O"),
    Kind(5, "Contrôle", 15, 0x9E9E9E, "O"),
    Kind(6, "Détartrage", 60, 0x00BCD4, "O"),
    Kind(7, "Échographie", 45, 0x673AB7, "O"),
    Kind(8, "Comportement", 60, 0x000FA0, "O"),
    Kind(9, "Toilettage", 60, 0xFFC0CB, "N"),
)
CONSULTATION, VACCINATION, _, EMERGENCY, CHECK, SCALING, _, BEHAVIOUR, GROOMING = KINDS
FOR_CARNIVORES = (VACCINATION, SCALING, BEHAVIOUR, GROOMING)


class Act(NamedTuple):
    """Something done and billed; `halves` says that half a unit of it can be billed."""

    label: str
    cents: int
    halves: bool = False


ACTS = {  # the first line of the invoice, by kind of appointment
    1: (Act("Consultation", 3850), Act("Consultation NAC", 4600)),
    2: (Act("Vaccination annuelle", 5540), Act("Vaccination rage", 4890)),
    3: (Act("Stérilisation femelle", 21500), Act("Castration", 9870), Act("Ostéosynthèse", 89000)),
    4: (Act("Consultation d'urgence", 7920), Act("Consultation de nuit", 11250)),
    5: (Act("Consultation de contrôle", 2430),),
    6: (Act("Détartrage sous anesthésie", 14560),),
    7: (Act("Échographie abdominale", 8840), Act("Échocardiographie", 11780)),
    8: (Act("Consultation de comportement", 9650),),
    9: (Act("Toilettage complet", 4780),),
}

COMPLEMENTS = (
    Act("Injection sous-cutanée, le ml", 1140, halves=True),
    Act("Anesthésie gazeuse, l'heure", 6480, halves=True),
    Act("Hospitalisation, le jour", 3970, halves=True),
    Act("Analyse de sang, bilan complet", 6830),
    Act("Radiographie, deux vues", 7210),
    Act("Analyse d'urine", 2260),
    Act("Soins locaux", 1490),
    Act("Identification électronique", 6670),
    Act("Passeport européen", 1830),
)


class Goods(NamedTuple):
    """One family of shelf labels: `label` takes each of `variants` in turn, at a growing price."""

    family: str
    unit: str
    cents: int
    label: str
    variants: tuple[str, ...]


GOODS = (
    Goods("MED", "BTE", 890, "Amoxicilline {} mg, 20 comprimés", ("50", "250", "500")),
    Goods("MED", "BTE", 960, "Métronidazole {} mg, 20 comprimés", ("125", "250")),
    Goods("MED", "BTE", 1120, "Doxycycline {} mg, 10 comprimés", ("20", "100", "200")),
    Goods("MED", "BTE", 1050, "Céfalexine {} mg, 20 comprimés", ("75", "300", "600")),
    Goods("MED", "FL", 1340, "Méloxicam, suspension orale {} ml", ("10", "32", "100")),
    Goods("MED", "BTE", 1480, "Carprofène {} mg, 20 comprimés", ("20", "50", "100")),
    Goods("MED", "BTE", 620, "Prednisolone {} mg, 30 comprimés", ("5", "20")),
    Goods("MED", "BTE", 740, "Furosémide {} mg, 20 comprimés", ("10", "40")),
    Goods("MED", "BTE", 1290, "Bénazépril {} mg, 28 comprimés", ("5", "20")),
    Goods("MED", "BTE", 2870, "Pimobendane {} mg, 50 comprimés", ("1,25", "2,5", "5")),
    Goods("MED", "BTE", 790, "Vermifuge {}", ("chaton", "chat", "petit chien", "grand chien")),
    Goods("MED", "BTE", 1870, "Pipettes {}", ("chat", "chien < 10 kg", "10-20 kg", "> 20 kg")),
    Goods("MED", "UN", 2460, "Collier antiparasitaire {}", ("petit", "grand")),
    Goods("MED", "FL", 980, "Collyre {}", ("gentamicine", "chloramphénicol", "hydratant")),
    Goods("MED", "FL", 1150, "Lotion auriculaire {} ml", ("60", "125")),
    Goods("MED", "FL", 1390, "Shampooing {}", ("apaisant", "chlorhexidine")),
    Goods("MED", "FL", 4870, "Insuline 40 UI/ml, flacon {} ml", ("10",)),
    Goods("MED", "FL", 450, "Ringer lactate {} ml", ("500", "1000")),
    Goods("MED", "FL", 310, "Chlorure de sodium 0,9 % {} ml", ("250", "500", "1000")),
    Goods("MED", "UN", 1270, "Pansement digestif {} g", ("30", "60")),
    Goods("ALI", "SAC", 2190, "Croquettes chien {}", ("chiot 3 kg", "adulte 3 kg", "adulte 12 kg")),
    Goods("ALI", "SAC", 5930, "Croquettes chien senior {}", ("12 kg",)),
    Goods("ALI", "SAC", 1980, "Croquettes chat {}", ("chaton 2 kg", "adulte 2 kg", "adulte 7 kg")),
    Goods("ALI", "SAC", 2240, "Croquettes chat stérilisé {}", ("2 kg", "7 kg")),
    Goods("ALI", "SAC", 2470, "Aliment rénal {}", ("chat 2 kg", "chat 12 sachets", "chien 7 kg")),
    Goods(
        "ALI", "SAC", 2380, "Aliment digestif {}", ("chat 2 kg", "chat 12 sachets", "chien 7 kg")
    ),
    Goods("ALI", "SAC", 2790, "Aliment hypoallergénique {}", ("chat 2 kg", "chien 7 kg")),
    Goods("ALI", "SAC", 2560, "Aliment obésité {}", ("chat 2 kg", "chien 7 kg")),
    Goods("ALI", "SAC", 490, "Foin de prairie {} kg", ("1", "3")),
    Goods("ALI", "SAC", 630, "Granulés lapin {} kg", ("1", "3")),
    Goods("MAT", "BTE", 870, "Seringues {} ml, boîte de 100", ("1", "2,5", "5", "10", "20")),
    Goods("MAT", "BTE", 540, "Aiguilles {} G, boîte de 100", ("21", "23", "25")),
    Goods("MAT", "UN", 210, "Compresses stériles {} cm", ("5 x 5", "10 x 10")),
    Goods("MAT", "UN", 240, "Bande cohésive {} cm", ("5", "7,5", "10")),
    Goods("MAT", "UN", 190, "Cathéter {} G", ("18", "20", "22", "24")),
    Goods("MAT", "BTE", 980, "Gants d'examen taille {}", ("S", "M", "L")),
    Goods("MAT", "UN", 460, "Fil résorbable {}", ("2/0", "3/0", "4/0")),
    Goods("MAT", "UN", 520, "Collerette taille {}", ("1", "2", "3", "4")),
    Goods("MAT", "BTE", 1360, "Lames de bistouri n° {}", ("10", "15")),
    Goods("VAC", "FL", 1240, "Vaccin chien {}", ("CHPPi", "L4", "rage", "toux de chenil")),
    Goods("VAC", "FL", 1310, "Vaccin chat {}", ("typhus-coryza", "leucose", "rage")),
    Goods("VAC", "FL", 1180, "Vaccin lapin {}", ("myxomatose-VHD", "VHD2")),
    Goods("VAC", "FL", 1420, "Vaccin furet {}", ("maladie de Carré",)),
    Goods("STU", "FL", 690, "Morphine {} mg/ml", ("10",)),
    Goods("STU", "FL", 1830, "Méthadone {} mg/ml", ("10",)),
    Goods("STU", "FL", 1170, "Kétamine {} mg/ml", ("50", "100")),
    Goods("STU", "FL", 940, "Fentanyl {} µg/ml", ("50",)),
    Goods("STU", "FL", 2150, "Butorphanol {} mg/ml", ("10",)),
    Goods("STU", "FL", 2680, "Buprénorphine {} mg/ml", ("0,3",)),
)

RETIRED_GOODS = (
    Goods("MED", "UN", 1990, "Collier insectifuge, ancien modèle {}", ("chat", "chien")),
    Goods("ALI", "SAC", 1750, "Croquettes chien, ancienne gamme {} kg", ("4", "15")),
    Goods("MAT", "BTE", 2930, "Films radiographiques {} cm", ("24 x 30",)),
    Goods("VAC", "FL", 1080, "Vaccin chien L2 {}", ("(remplacé)",)),
)


def tax_rate(family: str) -> int:
    """The percentage of tax on goods of this family."""
    return 10 if family == "ALI" else 20
